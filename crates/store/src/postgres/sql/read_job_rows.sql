select {columns of job_rows as v} from everbell.job_rows v where v.id = any($1)
