#include "tests/bench/fault.h"

#include <fmt/format.h>

namespace keelson::bench {

std::string FaultDefinition(std::string_view plural, std::string_view kind, std::string_view schema,
                            std::string_view more, std::string_view scope) {
  const std::string_view any = "{'type':'object','x-kubernetes-preserve-unknown-fields':true}";
  const std::string versions = fmt::format(
      "{{'name':'v1','served':true,'storage':true,'schema':{{'openAPIV3Schema':{0}}}}},"
      "{{'name':'v2','served':true,'storage':false,'schema':{{'openAPIV3Schema':{0}}}}}",
      schema.empty() ? any : schema);
  return fmt::format(
      "{{'apiVersion':'apiextensions.k8s.io/"
      "v1','kind':'CustomResourceDefinition','metadata':{{'name':'{0}.{1}'}},"
      "'spec':{{'group':'{1}','scope':'{2}','names':{{'plural':'{0}','kind':'{3}'}},'versions':[{4}]{5}}}}}",
      plural, kFaultGroup, scope, kind, versions, more);
}

std::string FaultCollection(std::string_view plural, std::string_view version) {
  return fmt::format("/apis/{}/{}/namespaces/default/{}", kFaultGroup, version, plural);
}

Call FaultObject(std::string_view plural, std::string_view kind, std::string_view name,
                 std::string_view spec) {
  return {"POST", FaultCollection(plural),
          fmt::format("{{'apiVersion':'{}/v1','kind':'{}','metadata':{{'name':'{}'}},'spec':{{{}}}}}",
                      kFaultGroup, kind, name, spec)};
}

}  // namespace keelson::bench
