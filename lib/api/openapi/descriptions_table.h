// Internal to lib/api/openapi: the table of descriptions that describe.cc generates.
#pragma once

#include <cstdint>

namespace keelson::api::descriptions {

// A piece of kText.
struct Piece {
  uint32_t offset;
  uint32_t size;
};

struct Message {
  Piece name;      // apps.v1.Deployment: without the package prefix
  uint32_t first;  // in kPieces: the message's own text, then one per field in declaration order
  uint32_t fields;
};

extern const char kText[];
extern const Piece kPieces[];
extern const Message kMessages[];  // ordered by name
extern const uint32_t kMessageCount;

}  // namespace keelson::api::descriptions
