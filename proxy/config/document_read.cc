#include "lib/base/ip.h"
#include "lib/component/document_reader.h"
#include "lib/component/logging_options.h"
#include "proxy/config/document.h"
#include "proxy/config/document_fields.h"

namespace keelson::proxy {
namespace {

using component::DocumentReader;

Error Bad(const Error& why) { return Error(Code::kInvalid, why.message()).Wrap("failed to decode"); }

template <typename T>
void ReadField(DocumentReader& in, const char* path, T& field, component::Zero zero) {
  in.Read(path, field, zero);
}

// One duration may be a number too.
void ReadField(DocumentReader& in, const char* path, Document::Duration& field, component::Zero zero) {
  if (path != std::string_view("logging.flushFrequency")) return in.Read(path, field, zero);
  component::TimeOrDuration read;
  in.Read(path, read);
  if (read.value.count() != 0) field = read.value;
}

}  // namespace

Result<> ReadDocument(const std::string& text, Document& document, std::vector<std::string>& problems) {
  component::DocumentProblems found{.words = component::TypeWords::kGoValue};
  const auto root = component::ParseDocument(text, found);
  if (!root) return Bad(root.error());
  const component::DocumentType type{"KubeProxyConfiguration", {"kubeproxy.config.k8s.io/v1alpha1"}};
  if (Result<> checked = component::CheckType(*root, type); !checked) return Bad(checked.error());
  {
    DocumentReader in(*root, found);
    in.Ignore({"kind", "apiVersion"});
    ForEachField(document, [&](const char* path, auto& field, component::Zero zero) {
      ReadField(in, path, field, zero);
    });
    component::ReadLoggingOptions(in);
  }
  problems.insert(problems.end(), found.strict.begin(), found.strict.end());
  if (found.wrong.empty()) return {};
  return Error(Code::kInvalid, "failed to decode: " + component::Join(found.wrong));
}

void SetDefaults(Document& d) {
  Result<IpAddress> bind = IpAddress::Parse(d.bind_address);
  const bool v6 = bind && bind->is_v6();
  auto complete = [](std::string& address, const std::string& host, const char* port) {
    if (address.empty()) address = host;
    Result<IpAddress> ip = IpAddress::Parse(address);
    if (ip && ip->is_v6()) address = "[" + address + "]";
    const bool has_port = address.rfind(':') != std::string::npos && address.back() != ']';
    if (!has_port) address += port;
  };
  complete(d.healthz_bind_address, v6 ? "[::]" : "0.0.0.0", ":10256");
  complete(d.metrics_bind_address, v6 ? "[::1]" : "127.0.0.1", ":10249");
}

}  // namespace keelson::proxy
