select count(*) from everbell_targets
