select {columns of run_rows as v} from everbell_run_rows v where v.id in (select unhex(value) from json_each(?1))
