"""Running commands: spawned, read into rings, written to, waited for and ended (specification, section 7)."""
