"""Starting points for a user's own problem, copied by `apeval new`."""
