//go:build !linux

package main

import "errors"

func keepAwake() (func(), error) { return nil, errors.ErrUnsupported }
