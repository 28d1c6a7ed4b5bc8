// For tests: random canonical objects of any message type.
#pragma once

#include <cstdint>
#include <random>

#include "lib/api/scheme.h"

namespace keelson::api {

// Fills `object` with random fields. The result is canonical as lib/api/codec/codec.h defines it.
void FillRandom(Message& object, std::mt19937& random, int depth = 0);
// Adds explicit zeros without a meaning, as a Go client sends them.
void AddValueZeros(Message& object);

}  // namespace keelson::api
