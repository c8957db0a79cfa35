package mcptool_test

func runChild() {}
