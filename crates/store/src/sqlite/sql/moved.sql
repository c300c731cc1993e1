select moved_to, moved_at from everbell_moves
