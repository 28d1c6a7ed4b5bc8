// Conversion of custom objects between the versions of their definition.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::apiextensions {

struct CustomRow;
class Definition;

// An object in the version of `row`.
struct Versioned {
  const CustomRow* row;
  std::shared_ptr<const api::Message> object;
};

// The conversion strategy Webhook.
class Converter {  // thread safe
 public:
  virtual ~Converter() = default;
  // The objects in the version of `to`, in the same order, before its schema is applied. One error for all: upstream
  // fails a list when one of its objects cannot be converted. Blocks until `deadline` at most.
  virtual Result<std::vector<std::unique_ptr<api::Message>>> Convert(const Definition& definition,
                                                                     const CustomRow& to,
                                                                     const std::vector<Versioned>& objects,
                                                                     SteadyTime deadline) = 0;
};

}  // namespace keelson::apiextensions
