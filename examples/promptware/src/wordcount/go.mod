module example.org/wordcount

go 1.26.0
