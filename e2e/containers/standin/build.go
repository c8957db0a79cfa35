package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// programs is where the image has what was compiled.
const programs = "/programs"

// run is `go build -o DIR PACKAGE…`. It wants what the compiler would: the source of
// each package and of the workspace, and no cgo, since the programs are to be static.
func run(args []string) error {
	if len(args) == 0 || args[0] != "build" {
		return fmt.Errorf("only build is known, not %q", args)
	}
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	out := flags.String("o", "", "")
	flags.Bool("trimpath", false, "")
	flags.String("ldflags", "", "")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if cgo := os.Getenv("CGO_ENABLED"); cgo != "0" {
		return fmt.Errorf("CGO_ENABLED is %q", cgo)
	}
	if _, err := os.Stat("go.work"); err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	for _, path := range flags.Args() {
		if source, _ := filepath.Glob(filepath.Join(path, "*.go")); len(source) == 0 {
			return fmt.Errorf("%s has no source", path)
		}
		name := filepath.Base(path)
		if err := copyFile(filepath.Join(programs, name), filepath.Join(*out, name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
