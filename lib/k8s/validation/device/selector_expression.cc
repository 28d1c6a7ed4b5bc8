#include "lib/k8s/validation/device/selector_expression.h"

#include <fmt/format.h>

#include "lib/cel/env.h"

namespace keelson::k8s {
namespace {

// Sizes that the API allows.
constexpr int64_t kMostNames = 32, kMostDriverName = 63, kMostDomain = 63, kMostId = 32, kMostValue = 64;
// CELSelectorExpressionMaxCost.
constexpr uint64_t kMostCost = 1'000'000;

cel::EnvPtr MakeEnvironment() {
  using cel::DeclType;
  auto by_name = [](cel::DeclTypePtr value) {
    return DeclType::Map(DeclType::Map(std::move(value), kMostNames, false, kMostId), kMostNames, false,
                         kMostDomain);
  };
  cel::EnvOptions options;
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

}  // namespace

Result<std::shared_ptr<const cel::Program>> CompileDeviceSelector(std::string_view expression) {
  static const cel::EnvPtr environment = MakeEnvironment();
  auto program = environment->Compile(expression);
  if (!program) return Error(Code::kInvalid, "compilation failed: " + program.error().message());
  const cel::Type type = (*program)->result_type();
  if (type->kind != cel::TypeKind::kBool && !cel::IsDyn(type)) {
    return Error(Code::kInvalid,
                 fmt::format("must evaluate to bool or the unknown type, not {}", cel::FormatType(type)));
  }
  if ((*program)->estimate().max > kMostCost) {
    return Error(Code::kForbidden, "too complex, exceeds cost limit");
  }
  return program;
}

}  // namespace keelson::k8s
