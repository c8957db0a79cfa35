package mcpproxy_test

func runChild() {}
