"""The capsule: commands run in bubblewrap and see their tree and the programs of the system."""
