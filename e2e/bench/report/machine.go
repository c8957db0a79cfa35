package report

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// Machine is what the benchmarks ran on.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Go    string `json:"go"`
	// CLI and Server are the versions of the Temporal CLI and of the dev server in it.
	CLI    string `json:"temporalCli"`
	Server string `json:"temporalServer"`
}

// String is one line for people.
func (m Machine) String() string {
	cores := "1 core"
	if m.Cores != 1 {
		cores = fmt.Sprintf("%d cores", m.Cores)
	}
	return fmt.Sprintf("%s of %s, %s, Go %s, Temporal CLI %s (server %s, in-memory store)", cores, m.CPU, m.OS, m.Go, m.CLI, m.Server)
}

var temporalVersion = regexp.MustCompile(`version (\S+) \(Server ([^,)\s]+)`)

// ThisMachine looks at the machine, and asks the Temporal CLI for its versions.
func ThisMachine(cli string) (Machine, error) {
	out, err := exec.Command(cli, "--version").Output()
	if err != nil {
		return Machine{}, fmt.Errorf("report: %s --version: %w", cli, err)
	}
	version := temporalVersion.FindStringSubmatch(string(out))
	if version == nil {
		return Machine{}, fmt.Errorf("report: %s --version says %q", cli, out)
	}
	return Machine{
		CPU: processor(), Cores: runtime.NumCPU(), OS: system(), Go: strings.TrimPrefix(runtime.Version(), "go"),
		CLI: version[1], Server: version[2],
	}, nil
}

// processor is the model as the system names it, or the architecture.
func processor() string {
	if name := valueOf("/proc/cpuinfo", "model name", ":"); name != "" {
		return name
	}
	if out, err := exec.Command("sysctl", "-n", "machdep.cpu.brand_string").Output(); err == nil {
		return strings.TrimSpace(string(out))
	}
	return runtime.GOARCH
}

func system() string {
	name := runtime.GOOS
	if pretty := strings.Trim(valueOf("/etc/os-release", "PRETTY_NAME", "="), `"`); pretty != "" {
		name = pretty
	}
	if out, err := exec.Command("uname", "-sr").Output(); err == nil {
		name += ", " + strings.TrimSpace(string(out))
	}
	return name
}

// valueOf is the first value of a key in a file of lines, or empty.
func valueOf(file, key, separator string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if k, v, found := strings.Cut(line, separator); found && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// load is the load average of the last minute, nil where the system does not tell.
func load() *float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return nil
	}
	first, _, _ := strings.Cut(string(data), " ")
	value, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return nil
	}
	return &value
}
