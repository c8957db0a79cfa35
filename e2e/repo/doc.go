// Package repo holds the tests of the repository itself: which module may import
// which, what every package and module must come with, how large files may get,
// where wire names may stand, and that scripts parse and links in documents lead
// somewhere.
//
// The tests read the whole checkout, of which Go's test cache sees only this
// module: run them with -count=1, as ./justw test does.
package repo
