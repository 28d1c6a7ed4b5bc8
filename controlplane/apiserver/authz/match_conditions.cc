#include "controlplane/apiserver/authz/match_conditions.h"

#include <fmt/format.h>
#include <boost/json/value.hpp>

#include "lib/base/clock.h"
#include "lib/cel/env.h"
#include "lib/cel/values/json_view.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using cel::DeclType;
using cel::DeclTypePtr;

constexpr char kType[] = "Webhook";

metrics::Family& evaluation_seconds =
    metrics::Histograms("apiserver_authorization_match_condition_evaluation_seconds",
                        "Authorization match condition evaluation time in seconds, split by authorizer type "
                        "and name.",
                        {0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25}, {"name", "type"});
metrics::Family& errors_total = metrics::Counter(
    "apiserver_authorization_match_condition_evaluation_errors_total",
    "Total number of errors when an authorization webhook encounters a match condition error split by "
    "authorizer type and name.",
    {"name", "type"});
metrics::Family& exclusions_total =
    metrics::Counter("apiserver_authorization_match_condition_exclusions_total",
                     "Total number of exclusions when an authorization webhook is skipped because match "
                     "conditions exclude it.",
                     {"name", "type"});

cel::DeclField Field(const char* name, DeclTypePtr type) { return {name, name, std::move(type)}; }

DeclTypePtr SelectorType(const char* name) {
  const DeclTypePtr text = DeclType::String();
  const DeclTypePtr requirement =
      DeclType::Object("kubernetes.SelectorRequirement",
                       {Field("key", text), Field("operator", text), Field("values", DeclType::List(text))});
  return DeclType::Object(name,
                          {Field("rawSelector", text), Field("requirements", DeclType::List(requirement))});
}

DeclTypePtr SpecType() {
  const DeclTypePtr text = DeclType::String(), texts = DeclType::List(text);
  std::vector<cel::DeclField> resource;
  for (const char* name : {"namespace", "verb", "group", "version", "resource", "subresource", "name"}) {
    resource.push_back(Field(name, text));
  }
  resource.push_back(Field("fieldSelector", SelectorType("kubernetes.FieldSelectorAttributes")));
  resource.push_back(Field("labelSelector", SelectorType("kubernetes.LabelSelectorAttributes")));
  return DeclType::Object(
      "kubernetes.SubjectAccessReviewSpec",
      {Field("resourceAttributes", DeclType::Object("kubernetes.ResourceAttributes", std::move(resource))),
       Field("nonResourceAttributes", DeclType::Object("kubernetes.NonResourceAttributes",
                                                       {Field("path", text), Field("verb", text)})),
       Field("user", text), Field("groups", texts), Field("extra", DeclType::Map(texts)),
       Field("uid", text)});
}

struct Environment {
  DeclTypePtr type = SpecType();
  cel::EnvPtr env = [this] {
    cel::EnvOptions options;
    options.version = cel::kStoredExpressions;  // the file is the administrator's own
    options.variables = {{"request", type}};
    options.check_cost = false;
    return cel::Env::Make(std::move(options));
  }();
};

const Environment& Reviews() {
  static const Environment environment;
  return environment;
}

// The review with all of its fields, as expressions expect them.
json::object Complete(json::object spec) {
  for (const char* field : {"user", "uid"}) spec.emplace(field, "");
  spec.emplace("groups", json::array());
  spec.emplace("extra", json::object());
  if (json::value* resource = spec.if_contains("resourceAttributes")) {
    for (const char* field : {"namespace", "verb", "group", "version", "resource", "subresource", "name"}) {
      resource->get_object().emplace(field, "");
    }
  }
  if (json::value* path = spec.if_contains("nonResourceAttributes")) {
    for (const char* field : {"path", "verb"}) path->get_object().emplace(field, "");
  }
  return spec;
}

}  // namespace

Result<> AuthorizationConditions::Add(std::string_view expression) {
  Result<std::shared_ptr<const cel::Program>> program = Reviews().env->Compile(expression);
  if (!program) return Error(Code::kInvalid, "compilation failed: " + program.error().message());
  const cel::Type type = (*program)->result_type();
  if (type->kind != cel::TypeKind::kBool) {
    return Error(Code::kInvalid, fmt::format("must evaluate to bool but got {}", cel::FormatType(type)));
  }
  programs_.push_back(std::move(*program));
  return {};
}

Result<bool> AuthorizationConditions::Match(const json::object& spec, const std::string& name) const {
  const SteadyTime begin = SteadyTime::clock::now();
  const json::value data = Complete(spec);
  cel::Arena arena;
  cel::Activation activation(*Reviews().env);
  activation.Set("request", cel::JsonValue(data, Reviews().type.get(), arena));
  std::vector<std::string> problems;
  bool excluded = false;
  for (const auto& program : programs_) {
    Result<cel::Value> value = program->Evaluate(activation, arena);
    if (!value) {
      problems.push_back(fmt::format("cel evaluation error: expression '{}' resulted in error: {}",
                                     program->expression(), value.error().message()));
    } else if (!value->IsTrue()) {
      excluded = true;
      break;
    }
  }
  const std::chrono::duration<double> took = SteadyTime::clock::now() - begin;
  evaluation_seconds.HistogramWith({name, kType}).Observe(took.count());
  if (excluded) {
    exclusions_total.With({name, kType}).Increment();
    return false;
  }
  if (problems.empty()) return true;
  errors_total.With({name, kType}).Increment();
  const std::string all = fmt::format("{}", fmt::join(problems, ", "));
  return Error(Code::kInternal, problems.size() == 1 ? all : "[" + all + "]");
}

}  // namespace keelson::apiserver
