"""The figures of this room, one file each."""
