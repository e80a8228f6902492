"""An SVG picture as PNG, painted by resvg with fonts that come by pip, so that it is the same everywhere."""

from importlib.resources import as_file, files

from looplatch.states.errors import UsageError

SCALE = 2.0  # pixels of the picture for each of the page's


def png(picture: str) -> bytes:
    """The picture. Raises UsageError where the packages of `looplatch[diagrams]` are missing."""
    try:
        import resvg_py

        fonts = files("fontpkg_ibm_plex_mono") / "files"
    except ModuleNotFoundError as error:
        raise UsageError(
            "format 'png'",
            f"the package {error.name} is not installed",
            "Install looplatch[diagrams], or take the format 'svg', which needs nothing more",
        ) from error
    with as_file(fonts) as folder:
        return resvg_py.svg_to_bytes(
            svg_string=picture,
            zoom=SCALE,
            skip_system_fonts=True,
            font_files=[str(folder / f"IBMPlexMono-{weight}.ttf") for weight in ("Regular", "Bold")],
            monospace_family="IBM Plex Mono",
        )
