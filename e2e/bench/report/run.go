package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// The documents, from the root of the checkout.
const (
	ResultsFile  = "docs/benchmarks.json"
	DocumentFile = "docs/benchmarks.md"
)

// packages have benchmarks.
var packages = []string{"./e2e/bench", "./proxy-worker/internal/stdio"}

// Main runs the benchmarks with more flags of go test, keeps what they measured and
// makes the documents. With no benchmark run at all, -bench NONE, it only makes the
// documents. It returns the exit code.
func Main(root string, flags []string) int {
	if err := run(root, flags); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

func run(root string, flags []string) error {
	machine, err := ThisMachine(os.Getenv("TEMPORAL_CLI"))
	if err != nil {
		return err
	}
	before, began := load(), time.Now()
	var output bytes.Buffer
	var failed error
	for _, p := range packages { // one by one, so that each result is seen when it is there
		cmd := exec.Command("go", append(append([]string{
			"test", "-run", "^$", "-bench", ".", "-benchtime", "30s", "-timeout", "90m",
		}, flags...), p)...)
		cmd.Dir = root
		cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &output), os.Stderr
		failed = errors.Join(failed, cmd.Run())
	}
	found, err := Parse(&output)
	if err != nil {
		return err
	}
	file := filepath.Join(root, ResultsFile)
	results, err := Load(file)
	if err != nil {
		return err
	}
	if failed == nil && len(flags) == 0 {
		clear(results) // all have run: what is left is of benchmarks that are no more
	}
	for name, metrics := range found { // also those before one that failed
		results[name] = Result{Measured: began.Format(time.DateOnly), Load: before, Machine: machine, Metrics: metrics}
	}
	err = errors.Join(results.Save(file), results.Write(root))
	fmt.Fprintf(os.Stderr, "%d benchmarks in %v; %s is made of %s\n",
		len(found), time.Since(began).Round(time.Second), DocumentFile, ResultsFile)
	return errors.Join(failed, err)
}

// Write makes the documents.
func (r Results) Write(root string) error {
	documents, err := r.Documents()
	if err != nil {
		return err
	}
	for name, data := range documents {
		if err := os.WriteFile(filepath.Join(root, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
