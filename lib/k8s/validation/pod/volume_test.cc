// Volumes of pods.
#include <gtest/gtest.h>

#include "lib/k8s/testing/rules.h"

namespace keelson::k8s {
namespace {

std::string Volume(const std::string& source) {
  return PodAnd(R"("serviceAccountName":"default","volumes":[{"name":"v",)" + source + "}]");
}

TEST(ValidateVolume, OneSourceEach) {
  ExpectErrors("v1", "Pod",
               {
                   {Volume(R"("emptyDir":{})"), {}},
                   {Volume(R"("emptyDir":{},"hostPath":{"path":"/a"})"),
                    {"spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"}},
                   {PodAnd(R"("volumes":[{"name":"v","emptyDir":{}},{"name":"v","emptyDir":{}}])"),
                    {R"(spec.volumes[1].name: Duplicate value: "v")"}},
                   {PodAnd(R"("volumes":[{"emptyDir":{}}])"), {"spec.volumes[0].name: Required value"}},
               });
}

TEST(ValidateVolume, Sources) {
  ExpectErrors(
      "v1", "Pod",
      {
          {Volume(R"("emptyDir":{"sizeLimit":"-1"})"),
           {R"(spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource )"
            "quantity"}},
          {Volume(R"("hostPath":{"path":"/a/../b"})"),
           {R"(spec.volumes[0].hostPath.path: Invalid value: "/a/../b": must not contain '..')"}},
          {Volume(R"("hostPath":{"path":"/a","type":"Door"})"),
           {R"(spec.volumes[0].hostPath.type: Unsupported value: "Door": supported values: "", "BlockDevice", )"
            R"("CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")"}},
          {Volume(R"("secret":{})"), {"spec.volumes[0].secret.secretName: Required value"}},
          {Volume(R"("secret":{"secretName":"s","defaultMode":512})"),
           {"spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 "
            "(octal), both inclusive"}},
          {Volume(R"("secret":{"secretName":"s","items":[{"key":"k","path":"../x"}]})"),
           {R"(spec.volumes[0].secret.items[0].path: Invalid value: "../x": must not contain '..')"}},
          {Volume(R"("configMap":{"name":"c","items":[{"key":"k","path":"/x"}]})"),
           {R"(spec.volumes[0].configMap.items[0].path: Invalid value: "/x": must be a relative path)"}},
          {Volume(R"("persistentVolumeClaim":{"claimName":""})"),
           {"spec.volumes[0].persistentVolumeClaim.claimName: Required value"}},
          {Volume(R"("downwardAPI":{"items":[{"path":"a","fieldRef":{"fieldPath":"spec.nodeName"}}]})"),
           {R"(spec.volumes[0].downwardAPI.fieldRef.fieldPath: Unsupported value: "spec.nodeName": supported )"
            R"(values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", )"
            R"("metadata.uid")"}},
          {Volume(R"("nfs":{"server":"s","path":"a"})"),
           {R"(spec.volumes[0].nfs.path: Invalid value: "a": must be an absolute path)"}},
          {Volume(R"("csi":{"driver":"x","fsType":"ext4","nodePublishSecretRef":{}})"),
           {"spec.volumes[0].csi.nodePublishSecretRef.name: Required value"}},
          {Volume(R"("image":{"pullPolicy":"Always"})"), {"spec.volumes[0].image.reference: Required value"}},
          {Volume(R"("ephemeral":{})"), {"spec.volumes[0].ephemeral.volumeClaimTemplate: Required value"}},
      });
}

TEST(ValidateVolume, Projections) {
  auto projected = [](const std::string& sources) {
    return Volume(R"("projected":{"sources":[)" + sources + "]}");
  };
  ExpectErrors(
      "v1", "Pod",
      {
          {projected(R"({"serviceAccountToken":{"path":"token"}},{"configMap":{"name":"c","items":[)"
                     R"({"key":"k","path":"k"}]}})"),
           {}},
          {projected(
               R"({"configMap":{"name":"c","items":[{"key":"k","path":"a"}]}},{"downwardAPI":{"items":[{"path":"a",)"
               R"("fieldRef":{"fieldPath":"metadata.name"}}]}})"),
           {R"(spec.volumes[0].projected: Invalid value: "a": conflicting )"
            "duplicate paths"}},
          {projected(R"({"serviceAccountToken":{"path":"a","expirationSeconds":10}})"),
           {"spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 10: "
            "may not specify a duration less than 10 minutes"}},
          {projected(R"({"secret":{"name":"s"},"configMap":{"name":"c"}})"),
           {"spec.volumes[0].projected.sources[0]: Forbidden: may not specify more than 1 volume "
            "type per source"}},
          {projected(R"({"secret":{}})"),
           {"spec.volumes[0].projected.sources[0].secret.name: Required value"}},
      });
}

}  // namespace
}  // namespace keelson::k8s
