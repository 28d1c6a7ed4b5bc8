// Prints values as Go prints them for hashes (k8s.io/utils/dump.ForHash, which is spew's %#v without methods
// and addresses): {Name:(string)web Replicas:(*int32)3 Labels:(map[string]string)map[a:b]}. The types are
// Go's, the values come from JSON.
#pragma once

#include <boost/json.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::kubelet {

// Struct types by name ("core.Pod"), with their fields in Go's order.
class GoTypes {
 public:
  struct Field {
    std::string name, type;
    std::string json;  // key; ".": embedded, its fields are those of the object around; "-": always zero
  };
  // One line per struct: "core.Container: Name string, TTY bool =tty". Without "=" the key is the name with a
  // small first letter.
  explicit GoTypes(std::string_view text);
  const std::vector<Field>* Find(std::string_view type) const;  // null: not a struct, or unknown

 private:
  std::map<std::string, std::vector<Field>, std::less<>> structs_;
};

// nullopt: `value` has something that these types do not cover. Unknown types are strings.
std::optional<std::string> GoPrint(const GoTypes& types, std::string_view type,
                                   const boost::json::value& value);

}  // namespace keelson::kubelet
