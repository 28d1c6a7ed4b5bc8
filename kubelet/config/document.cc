#include "kubelet/config/document.h"

#include "kubelet/config/value.h"
#include "lib/component/logging_options.h"

namespace keelson::kubelet {

namespace json = boost::json;
using component::DocumentReader;

namespace {

constexpr char kKind[] = "KubeletConfiguration", kVersion[] = "kubelet.config.k8s.io/v1beta1";

template <typename T>
void ReadPlace(DocumentReader& in, const Field& field, T& place) {
  in.Read(field.path, place, field.zero);
}

void ReadPlace(DocumentReader& in, const Field& field, Duration& place) {
  if (!field.nanos) return in.Read(field.path, place, field.zero);
  component::TimeOrDuration read;
  in.Read(field.path, read);
  if (read.value.count() != 0) place = std::chrono::duration_cast<Duration>(read.value);
}

}  // namespace

void ReadFields(DocumentReader& in, ShutdownPeriod& out) {
  in.Read("priority", out.priority);
  in.Read("shutdownGracePeriodSeconds", out.seconds);
}

void ReadFields(DocumentReader& in, MemoryReservation& out) {
  std::map<std::string, component::QuantityText> limits;
  in.Read("numaNode", out.numa_node);
  in.Read("limits", limits);
  for (auto& [resource, amount] : limits) out.limits[resource] = std::move(amount.text);
}

void ReadFields(DocumentReader& in, NodeTaint& out) {
  in.Read("key", out.key);
  in.Read("value", out.value);
  in.Read("effect", out.effect);
  in.Ignore({"timeAdded"});
}

Result<json::object> ParseDocument(const std::string& text, std::vector<std::string>& problems) {
  component::DocumentProblems found;
  KEELSON_ASSIGN_OR_RETURN(json::object document, component::ParseDocument(text, found));
  problems.insert(problems.end(), found.strict.begin(), found.strict.end());
  KEELSON_RETURN_IF_ERROR(component::CheckType(document, {kKind, {kVersion}}));
  return document;
}

Result<> FillConfig(const json::object& document, KubeletConfig& config, std::vector<std::string>& problems) {
  component::DocumentProblems found{.words = component::TypeWords::kGoField, .kind = kKind};
  {
    DocumentReader in(document, found);
    in.Ignore({"kind", "apiVersion"});
    for (const Field& field : Fields()) {
      std::visit([&](auto place) { ReadPlace(in, field, config.*place); }, field.place);
    }
    component::ReadLoggingOptions(in);
  }
  problems.insert(problems.end(), found.strict.begin(), found.strict.end());
  if (found.wrong.empty()) return {};
  return Error(Code::kBadRequest, component::Join(found.wrong));
}

json::object ToDocument(const KubeletConfig& config) {
  json::object out = {{"kind", kKind}, {"apiVersion", kVersion}};
  for (const Field& field : Fields()) {
    json::value value = PrintField(field, config);
    if (value.is_null()) continue;
    json::object* parent = &out;
    std::string_view rest = field.path;
    for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      json::value& child = (*parent)[rest.substr(0, dot)];
      if (child.is_null()) child = json::object();
      parent = &child.get_object();
      rest.remove_prefix(dot + 1);
    }
    (*parent)[rest] = std::move(value);
  }
  return out;
}

}  // namespace keelson::kubelet
