package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// wrongArguments returns an error that tells the agent in a sentence which argument has a wrong type, and which type is wanted. in is the
// type into which the arguments were decoded.
func wrongArguments(err error, in reflect.Type) error {
	fault, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return &ruleError{"arguments", "The arguments cannot be read: " + err.Error() + "."}
	}
	given := kindOf(fault.Value)
	if fault.Field == "" {
		return &ruleError{"arguments", fmt.Sprintf("The arguments must be an object, and are %s.", given)}
	}
	names := strings.Split(fault.Field, ".")
	if f, ok := in.FieldByName(names[0]); ok && f.Anonymous {
		names = names[1:] // the name of an embedded type is no argument
	}
	field, want := strings.Join(names, "."), fieldType(in, names)
	text := fmt.Sprintf("%s must be %s, and is %s.", field, typeName(want, false), given)
	if want.Kind() == reflect.Slice && fault.Type.Kind() != reflect.Slice { // the fault is in an item
		text = fmt.Sprintf("%s must be %s, and has %s in it.", field, typeName(want, false), given)
	}
	return &ruleError{"arguments", text}
}

// fieldType returns the type of a field by its JSON names, from the outside in.
func fieldType(t reflect.Type, names []string) reflect.Type {
	for _, name := range names {
		for t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return t
		}
		for _, f := range reflect.VisibleFields(t) {
			if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
				t = f.Type
				break
			}
		}
	}
	return t
}

func typeName(t reflect.Type, several bool) string {
	one, many := "an object", "objects"
	if t == reflect.TypeFor[option]() {
		many = "options"
	}
	switch t.Kind() {
	case reflect.String:
		one, many = "a text", "texts"
	case reflect.Bool:
		one, many = "true or false", "true or false"
	case reflect.Slice:
		one, many = "a list of "+typeName(t.Elem(), true), "lists of "+typeName(t.Elem(), true)
	default:
	}
	if several {
		return many
	}
	return one
}

// kindOf returns in words the kind of a value as described by encoding/json.
func kindOf(value string) string {
	kind, _, _ := strings.Cut(value, " ")
	if words, ok := map[string]string{"string": "a text", "number": "a number", "bool": "true or false", "array": "a list", "object": "an object"}[kind]; ok {
		return words
	}
	return value
}
