"""Problems that others defined, with their truths: the yardstick of `apeval bench public`."""
