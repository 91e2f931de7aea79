"""Problems on which others have tried learned proposals."""
