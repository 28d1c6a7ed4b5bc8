// The table of KubeletConfiguration's fields: path in the file, member of the struct, flag. The member's type says
// how the field is read and written. Internal to this folder.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "kubelet/config/config.h"
#include "lib/component/document_reader.h"

namespace keelson::kubelet {

template <typename T>
using In = T KubeletConfig::*;
using Place =
    std::variant<In<bool>, In<int32_t>, In<int64_t>, In<double>, In<std::string>, In<Duration>,
                 In<std::vector<std::string>>, In<StringMap>, In<std::map<std::string, bool>>,
                 In<std::map<std::string, std::vector<std::string>>>, In<std::vector<ShutdownPeriod>>,
                 In<std::vector<MemoryReservation>>, In<std::vector<NodeTaint>>>;

struct Field {
  using Zero = component::Zero;
  std::string_view path;  // authentication.x509.clientCAFile
  Place place;
  Zero zero = Zero::kDefault;  // what a zero in the file means
  std::string_view flag;       // without dashes; empty: none
  bool nanos = false;          // a TimeOrDuration
};

const std::vector<Field>& Fields();
// Null: no such field.
const Field* FindField(std::string_view path);

}  // namespace keelson::kubelet
