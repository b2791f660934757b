module example.com/customstore

go 1.26.0

require github.com/contextengine/contextengine v0.0.0

replace github.com/contextengine/contextengine => ../..
