-- Two edits at the same time could close a circle that neither sees, so chains change one after the other. The row of the
-- migration that made them stands for all of them: nothing else ever locks it.
select version from everbell.migrations where version = 20 for update
