package stdio_test

func own() {}
