package mcpproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// operationNames gives each upstream name that of its operation: prefix and name
// where the contract allows it, else one that is made of it, always the same for
// the same set of names whatever their order.
func operationNames(prefix string, upstream []string) map[string]string {
	names := make(map[string]string, len(upstream))
	owners := map[string]int{} // how many want a name
	for _, u := range upstream {
		if _, ok := names[u]; ok {
			continue
		}
		name := prefix + u
		if contract.CheckToolName(name) != nil {
			name = replaceRunes(name)
		}
		names[u] = name
		owners[name]++
	}
	for u, name := range names {
		if contract.CheckToolName(name) != nil || owners[name] > 1 && name != prefix+u {
			names[u] = withHash(name, u)
		}
	}
	return names
}

// replaceRunes puts _ where a tool name may not have what stands there.
func replaceRunes(name string) string {
	return strings.Map(func(r rune) rune {
		if contract.CheckToolName("x"+string(r)) != nil {
			return '_'
		}
		return r
	}, name)
}

// withHash returns a name that tells its upstream's apart from all others.
func withHash(name, upstream string) string {
	sum := sha256.Sum256([]byte(upstream))
	suffix := "_" + hex.EncodeToString(sum[:4])
	if most := contract.MaxToolNameLength - len(suffix); len(name) > most {
		name = name[:most]
	}
	return name + suffix
}
