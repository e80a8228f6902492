"""looplatch.export: a log in the formats of others: process mining, tracing, audit trails, spreadsheets."""

from looplatch.export.exporting import FORMATS, Format, export

__all__ = ["FORMATS", "Format", "export"]
