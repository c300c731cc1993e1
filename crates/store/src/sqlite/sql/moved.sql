select moved_to, target, state = 'done', moved_at from everbell_moves
