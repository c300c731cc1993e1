select {columns of job_rows as v} from everbell_job_rows v where v.id in (select unhex(value) from json_each(?1))
