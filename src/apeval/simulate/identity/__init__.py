"""A problem's identity: what a run was of, so that no two problems are taken for one."""
