select {columns of run_rows as v} from everbell.run_rows v where v.id = any($1)
