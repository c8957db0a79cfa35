// Package catalog knows which tools there are: it asks services for their
// manifests, all at once and again and again, and says which service owns which
// name. What answers is served; what does not is a warning, and never disturbs
// its neighbours.
package catalog
