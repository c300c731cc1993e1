select count(*) from everbell.targets
