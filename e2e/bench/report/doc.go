// Package report runs the benchmarks, keeps what they measured in
// docs/benchmarks.json, and makes docs/benchmarks.md and its charts of it. A
// benchmark that is not run keeps its last figures, so the document is complete
// after every run.
//
// The words of the document are in benchmarks.md.tmpl; nobody edits the document
// itself, and a test says so.
package report
