"""looplatch.demo: an embedded model that surveys a folder, and the tools that it does so with. Needs no key."""
