#include "lib/k8s/validation/device/selector_expression.h"

#include <fmt/format.h>

#include <map>

#include "lib/api/quantity.h"
#include "lib/cel/env.h"
#include "lib/cel/library/kubernetes_values.h"
#include "lib/cel/values/default_map.h"

namespace keelson::k8s {
namespace {

namespace resourcev1 = api::resource::v1;

// Sizes that the API allows.
constexpr int64_t kMostNames = 32, kMostDriverName = 63, kMostDomain = 63, kMostId = 32, kMostValue = 64;
// CELSelectorExpressionMaxCost.
constexpr uint64_t kMostCost = 1'000'000;

cel::EnvPtr MakeEnvironment(int version) {
  using cel::DeclType;
  auto by_name = [](cel::DeclTypePtr value) {
    return DeclType::Map(DeclType::Map(std::move(value), kMostNames, false, kMostId), kMostNames, false,
                         kMostDomain);
  };
  cel::EnvOptions options;
  options.version = version;
  options.variables = {
      {"device",
       DeclType::Object(
           "kubernetes.DRADevice",
           {{"driver", "driver", DeclType::String({{}, kMostDriverName}), true},
            {"allowMultipleAllocations", "allowMultipleAllocations", DeclType::Native(&cel::types::kBool)},
            {"attributes", "attributes", by_name(DeclType::Dyn(kMostValue)), true},
            {"capacity", "capacity", by_name(DeclType::Native(&cel::types::kQuantity)), true}})}};
  options.bind = true;
  return cel::Env::Make(std::move(options));
}

const cel::EnvPtr& StoredEnvironment() {
  static const cel::EnvPtr environment = MakeEnvironment(cel::kStoredExpressions);
  return environment;
}

Result<std::shared_ptr<const cel::Program>> CompileIn(const cel::EnvPtr& environment,
                                                      std::string_view expression) {
  auto program = environment->Compile(expression);
  if (!program) return Error(Code::kInvalid, "compilation failed: " + program.error().message());
  const cel::Type type = (*program)->result_type();
  if (type->kind != cel::TypeKind::kBool && !cel::IsDyn(type)) {
    return Error(Code::kInvalid,
                 fmt::format("must evaluate to bool or the unknown type, not {}", cel::FormatType(type)));
  }
  return program;
}

Result<cel::Value> ValueOf(const std::string& name, const resourcev1::DeviceAttribute& attribute,
                           cel::Arena& arena) {
  if (attribute.has_int_()) return cel::Value::Int(attribute.int_());
  if (attribute.has_bool_()) return cel::Value::Bool(attribute.bool_());
  if (attribute.has_string()) return cel::Value::String(attribute.string());
  if (attribute.has_version()) {
    const cel::Value version = cel::NewSemver(attribute.version(), arena);
    if (!version.IsError()) return version;
    return Error(Code::kInvalid,
                 fmt::format("attribute {}: parse semantic version: {}", name, version.text()));
  }
  return Error(Code::kInvalid, fmt::format("attribute {}: unsupported attribute value", name));
}

// Entries by domain and identifier; those without a domain are of the driver's.
class ByDomain {
 public:
  ByDomain(std::string_view driver, cel::Arena& arena) : driver_(driver), arena_(arena) {}
  void Add(std::string_view name, cel::Value value) {
    const size_t slash = name.find('/');
    const std::string_view domain = slash == std::string_view::npos ? driver_ : name.substr(0, slash);
    const std::string_view id = slash == std::string_view::npos ? name : name.substr(slash + 1);
    cel::HashMap*& map = maps_[domain];
    if (!map) {
      map = arena_.New<cel::HashMap>();
      domains_.Insert(cel::Value::String(domain), cel::Value::Map(map));
    }
    map->Insert(cel::Value::String(id), value);
  }
  cel::Value value() const { return cel::Value::Map(&domains_); }

 private:
  const std::string_view driver_;
  cel::Arena& arena_;
  std::map<std::string_view, cel::HashMap*> maps_;
  cel::DefaultMap domains_;  // a domain without entries reads as an empty map
};

}  // namespace

Result<std::shared_ptr<const cel::Program>> CompileDeviceSelector(std::string_view expression) {
  static const cel::EnvPtr environment = MakeEnvironment(cel::kNewExpressions);
  KEELSON_ASSIGN_OR_RETURN(auto program, CompileIn(environment, expression));
  if (program->estimate().max > kMostCost) {
    return Error(Code::kForbidden, "too complex, exceeds cost limit");
  }
  return program;
}

Result<std::shared_ptr<const cel::Program>> CompileStoredDeviceSelector(std::string_view expression) {
  return CompileIn(StoredEnvironment(), expression);
}

Result<bool> DeviceMatches(const cel::Program& program, std::string_view driver,
                           const resourcev1::Device& device) {
  cel::Arena arena;
  ByDomain attributes(driver, arena), capacity(driver, arena);
  for (const auto& [name, attribute] : device.attributes()) {
    KEELSON_ASSIGN_OR_RETURN(const cel::Value value, ValueOf(name, attribute, arena));
    attributes.Add(name, value);
  }
  for (const auto& [name, entry] : device.capacity()) {
    capacity.Add(name, cel::NewQuantity(api::Amount::Of(entry.value()), arena));
  }
  cel::HashMap fields;
  fields.Insert(cel::Value::String("driver"), cel::Value::String(driver));
  fields.Insert(cel::Value::String("allowMultipleAllocations"),
                cel::Value::Bool(device.allow_multiple_allocations()));
  fields.Insert(cel::Value::String("attributes"), attributes.value());
  fields.Insert(cel::Value::String("capacity"), capacity.value());
  static const int kDevice = StoredEnvironment()->VariableIndex("device");
  cel::Activation activation(*StoredEnvironment());
  activation.Set(kDevice, cel::Value::Map(&fields));
  KEELSON_ASSIGN_OR_RETURN(
      const cel::Value result,
      program.Evaluate(activation, arena, {.cost = kMostCost, .deadline = SteadyTime::max()}));
  if (!result.Is(cel::ValueKind::kBool)) {
    return Error(Code::kInvalid,
                 fmt::format("CEL result of type {} could not be converted to bool", cel::TypeName(result)));
  }
  return result.as_bool();
}

}  // namespace keelson::k8s
