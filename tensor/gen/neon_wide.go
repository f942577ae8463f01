package main

func emitNEONWide(s *neon) {}

func emitNEONQuant(s *neon) {}
