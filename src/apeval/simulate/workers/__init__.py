"""Worker processes: what they are told, and who deals the work out."""
