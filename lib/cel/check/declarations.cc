#include "lib/cel/check/declarations.h"

namespace keelson::cel {
namespace {

const TypeNode kList{TypeKind::kList, 0, -1, "list"}, kMap{TypeKind::kMap, 0, -1, "map"};
const TypeNode kOptional{TypeKind::kOpaque, 0, -1, types::kOptionalName};

template <typename Map>
int Index(const Map& map, std::string_view name) {
  auto found = map.find(std::string(name));
  return found == map.end() ? -1 : found->second;
}

}  // namespace

Declarations::Declarations() {
  for (Type type : {&types::kBool,
                    &types::kInt,
                    &types::kUint,
                    &types::kDouble,
                    &types::kString,
                    &types::kBytes,
                    &types::kNull,
                    &types::kDuration,
                    &types::kTimestamp,
                    &types::kAnyType,
                    &types::kDyn,
                    &types::kUrl,
                    &types::kQuantity,
                    &types::kNamedFormat,
                    &types::kSemver,
                    &types::kIp,
                    &types::kCidr,
                    &kList,
                    &kMap,
                    &kOptional}) {
    AddType(std::string(type->name), type);
  }
}

void Declarations::Note(const std::string& name) {
  if (size_t dot = name.find('.'); dot != std::string::npos) dotted_.insert(name.substr(0, dot));
}

void Declarations::AddVariable(std::string name, Type type) {
  Note(name);
  variable_index_[name] = static_cast<int>(variables_.size());
  variables_.push_back({std::move(name), type});
}

void Declarations::AddType(std::string name, Type type) {
  Note(name);
  types_[std::move(name)] = type;
}

void Declarations::AddFreeRoot(std::string name) {
  Note(name + ".");
  free_roots_.push_back(std::move(name));
}

bool Declarations::IsFree(std::string_view type) const {
  for (const std::string& root : free_roots_) {
    if (type.starts_with(root) && (type.size() == root.size() || type[root.size()] == '.')) return true;
  }
  return false;
}

int Declarations::FindVariable(std::string_view name) const { return Index(variable_index_, name); }

Type Declarations::FindType(std::string_view name) const {
  auto found = types_.find(std::string(name));
  return found == types_.end() ? nullptr : found->second;
}

}  // namespace keelson::cel
