package client

// KindOf is what a stream counts a frame as.
var KindOf = kindOf
