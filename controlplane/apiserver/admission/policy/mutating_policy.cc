#include "controlplane/apiserver/admission/policy/mutating_policy.h"

#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "controlplane/apiserver/admission/policy/patches.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/text.h"
#include "lib/k8s/defaulting/defaulting.h"

namespace keelson::apiserver::policy {
namespace {

namespace json = boost::json;

constexpr size_t kMaxDepth = 1000;

Error Internal(std::string_view why) {
  ErrorDetails details;
  details.causes.push_back({"", std::string(why), ""});
  return Error(Code::kInternal, fmt::format("Internal error occurred: {}", why))
      .WithDetails(std::move(details));
}

// The object of this kind that the JSON says.
Result<std::unique_ptr<api::Message>> Decode(const json::value& value, const api::Message& before,
                                             const api::ResourceInfo& row) {
  std::unique_ptr<api::Message> out(before.New());
  api::TypeMeta type;
  api::DecodeReport report;
  if (Result<> decoded = api::DecodeJson(json::serialize(value), *out, &report, &type); !decoded) {
    return Internal(decoded.error().message());
  }
  if (!report.problems.empty()) return Internal("strict decoding error: " + Join(report.problems, ", "));
  const api::GroupVersionKind gvk = row.Gvk();
  if (type.kind != gvk.kind || type.api_version != gvk.ApiVersion()) {
    return Internal(
        fmt::format("unable to convert {}, Kind={} to {}, Kind={}: a policy may not change the kind "
                    "of an object",
                    type.api_version, type.kind, gvk.ApiVersion(), gvk.kind));
  }
  // Policies own no fields.
  if (api::HasObjectMeta(before.GetDescriptor())) {
    *api::MutableMeta(*out).mutable_managed_fields() = api::Meta(before).managed_fields();
  }
  k8s::SetDefaults(*out);
  return out;
}

}  // namespace

MutatingPolicy CompileMutatingPolicy(const admissionregistrationv1::MutatingAdmissionPolicy& policy) {
  MutatingPolicy out;
  out.head = HeadOf(policy);
  const auto& spec = policy.spec();
  out.reinvoke = spec.reinvocation_policy() == "IfNeeded";
  out.conditions = MatchConditions(
      spec.match_conditions(),
      {out.head.name, "policy", "validate", out.head.ignore_failures, out.head.param_kind.has_value()});
  k8s::ExpressionCompiler compiler(spec.has_param_kind());
  for (const auto& variable : spec.variables()) compiler.AddVariable(variable.name(), variable.expression());
  k8s::ExpressionCompiler::Options options;
  options.patch_types = true;
  for (const auto& mutation : spec.mutations()) {
    MutatingPolicy::Mutation compiled;
    compiled.apply = mutation.patch_type() == "ApplyConfiguration";
    compiled.expression = compiled.apply ? compiler.Compile(mutation.apply_configuration().expression(),
                                                            k8s::ExpressionResult::kObject, options)
                                         : compiler.Compile(mutation.json_patch().expression(),
                                                            k8s::ExpressionResult::kPatch, options);
    out.mutations.push_back(std::move(compiled));
  }
  out.variables = compiler.TakeVariables();
  return out;
}

Result<std::unique_ptr<api::Message>> Mutate(const MutatingPolicy& policy,
                                             const MutatingPolicy::Mutation& mutation,
                                             const ExpressionInput& input, const api::Message& object,
                                             const ExpressionObject* params) {
  if (!mutation.expression.program) return Error(Code::kInvalid, mutation.expression.error);
  EvaluationOptions options;
  options.params = params;
  options.variables = &policy.variables;
  Evaluation evaluation(input, options);
  KEELSON_ASSIGN_OR_RETURN(const cel::Value value, evaluation.Evaluate(mutation.expression));
  json::parse_options limits;
  limits.max_depth = kMaxDepth;
  boost::system::error_code failed;
  const json::value before = json::parse(api::EncodeJson(object, input.row().Gvk()), failed, {}, limits);
  if (failed) return Internal(failed.message());
  KEELSON_ASSIGN_OR_RETURN(const json::value after,
                           mutation.apply ? ApplyConfiguration(before, input.row(), value, evaluation.arena())
                                          : ApplyPatch(before, value, evaluation.arena()));
  return Decode(after, object, input.row());
}

}  // namespace keelson::apiserver::policy
