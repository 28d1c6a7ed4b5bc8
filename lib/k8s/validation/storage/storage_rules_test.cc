// PersistentVolumes, claims and storage.k8s.io.
#include "lib/k8s/testing/rule_cases.h"
#include "lib/k8s/validation_settings.h"

namespace keelson::k8s {
namespace {

std::string Volume(const std::string& source) {
  return Cluster(R"("spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},)" + source + "}");
}

std::string OnNode(const std::string& label) {
  return Volume(R"("local":{"path":"/a"},"nodeAffinity":{"required":{"nodeSelectorTerms":[)"
                R"({"matchExpressions":[{"key":")" +
                label + R"(","operator":"In","values":["v"]}]}]}})");
}

TEST(StorageRules, Volumes) {
  ExpectErrors({
      {"v1", "PersistentVolume", Volume(R"("hostPath":{"path":"/data"})"), {}},
      {"v1",
       "PersistentVolume",
       Cluster(R"("spec":{"hostPath":{"path":"/data"}})"),
       {"spec.accessModes: Required value", "spec.capacity: Required value",
        "spec.capacity: Unsupported value: null: supported values: \"storage\""}},
      {"v1",
       "PersistentVolume",
       Volume(R"("hostPath":{"path":"/a/../b","type":"Odd"})"),
       {"spec.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        "spec.hostPath.type: Unsupported value: \"Odd\": supported values: \"\", \"BlockDevice\", "
        "\"CharDevice\", "
        "\"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\""}},
      {"v1",
       "PersistentVolume",
       Volume(R"("hostPath":{"path":"/"},"persistentVolumeReclaimPolicy":"Recycle")"),
       {"spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"}},
      {"v1",
       "PersistentVolume",
       Volume(R"("persistentVolumeReclaimPolicy":"Keep")"),
       {"spec.persistentVolumeReclaimPolicy: Unsupported value: \"Keep\": supported values: \"Delete\", "
        "\"Recycle\", "
        "\"Retain\"",
        "spec: Required value: must specify a volume type"}},
      {"v1",
       "PersistentVolume",
       Volume(R"("hostPath":{"path":"/a"},"nfs":{"server":"s","path":"/"})"),
       {"spec.nfs: Forbidden: may not specify more than 1 volume type"}},
      {"v1",
       "PersistentVolume",
       Volume(R"("local":{"path":"/a"})"),
       {"spec.nodeAffinity: Required value: Local volume requires node affinity"}},
      {"v1",
       "PersistentVolume",
       Volume(R"("local":{"path":"/a"},"nodeAffinity":{})"),
       {"spec.nodeAffinity.required: Required value: must specify required node constraints"}},
      {"v1",
       "PersistentVolume",
       Volume(
           R"("csi":{"driver":"a_b","volumeHandle":"","nodeStageSecretRef":{"name":"s"},"nodePublishSecretRef":{"name":"s"}})"),
       {std::string("spec.csi.driver: Invalid value: \"a_b\": ") + kSubdomainRule,
        "spec.csi.volumeHandle: Required value", "spec.csi.nodePublishSecretRef.namespace: Required value"}},
      {"v1",
       "PersistentVolume",
       Volume(R"("nfs":{"server":"","path":"a"})"),
       {"spec.nfs.server: Required value", "spec.nfs.path: Invalid value: \"a\": must be an absolute path"}},
      {"v1",
       "PersistentVolume",
       Volume(R"("iscsi":{"targetPortal":"p","iqn":"iqn.2015-02.example.com:test","lun":300})"),
       {"spec.iscsi.lun: Invalid value: 300: must be between 0 and 255, inclusive"}},
      {"v1",
       "PersistentVolume",
       Volume(R"("iscsi":{"targetPortal":"p","iqn":"iqn.example.com","lun":0})"),
       {"spec.iscsi.iqn: Invalid value: \"iqn.example.com\": must be valid format"}},
      {"v1",
       "PersistentVolume",
       Volume(R"("hostPath":{"path":"/a"},"volumeMode":"Odd","volumeAttributesClassName":"gold")"),
       {"spec.volumeMode: Unsupported value: \"Odd\": supported values: \"Block\", \"Filesystem\"",
        "spec.csi: Required value: has to be specified when using volumeAttributesClassName"}},
  });
  ExpectChangeErrors(
      ValidateUpdate,
      {{"v1",
        "PersistentVolume",
        Volume(R"("hostPath":{"path":"/a"})"),
        Volume(R"("hostPath":{"path":"/b"})"),
        {"spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n"
         "- spec.hostPath.path: \"/a\"\n+ spec.hostPath.path: \"/b\"\n"}},
       {"v1",
        "PersistentVolume",
        Volume(R"("csi":{"driver":"d.io","volumeHandle":"h"})"),
        Volume(
            R"("csi":{"driver":"d.io","volumeHandle":"h","controllerExpandSecretRef":{"name":"s","namespace":"n"}})"),
        {}},
       {"v1",
        "PersistentVolume",
        Volume(R"("hostPath":{"path":"/a"})"),
        Volume(R"("hostPath":{"path":"/a"},"volumeMode":"Block")"),
        {"volumeMode: Invalid value: \"Block\": field is immutable"}},
       {"v1",
        "PersistentVolume",
        Volume(R"("csi":{"driver":"d.io","volumeHandle":"h"},"volumeAttributesClassName":"gold")"),
        Volume(R"("csi":{"driver":"d.io","volumeHandle":"h"})"),
        {"spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden"}},
       // Node affinity may only change beta labels to the labels that replaced them.
       {"v1", "PersistentVolume", OnNode("beta.kubernetes.io/arch"), OnNode("kubernetes.io/arch"), {}},
       {"v1",
        "PersistentVolume",
        OnNode("failure-domain.beta.kubernetes.io/zone"),
        OnNode("topology.kubernetes.io/zone"),
        {}}});
  const std::unique_ptr<api::Message> old = ParseObject("v1", "PersistentVolume", OnNode("a")),
                                      now = ParseObject("v1", "PersistentVolume", OnNode("b"));
  const Lines errors = PrintErrors(ValidateUpdate(*now, *old));
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_TRUE(errors[0].starts_with("nodeAffinity: Invalid value: "));
  EXPECT_TRUE(errors[0].ends_with(": field is immutable, except for updating from beta label to GA"));
  const ScopedValidationSettings settings({.mutable_volume_node_affinity = true});
  EXPECT_EQ(PrintErrors(ValidateUpdate(*now, *old)), Lines());
}

std::string Claim(const std::string& rest, const std::string& size = "1Gi",
                  const std::string& status = "{}") {
  return Namespaced(R"("spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":")" + size +
                    R"("}})" + rest + R"(},"status":)" + status);
}

TEST(StorageRules, Claims) {
  ExpectErrors({
      {"v1", "PersistentVolumeClaim", Claim(""), {}},
      {"v1",
       "PersistentVolumeClaim",
       Claim("", "0"),
       {"spec.resources[storage]: Invalid value: \"0\": must be greater than zero"}},
      {"v1",
       "PersistentVolumeClaim",
       Namespaced(R"("spec":{"accessModes":["ReadWriteOncePod","ReadOnlyMany"]})"),
       {"spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
        "spec.resources[storage]: Required value"}},
      {"v1",
       "PersistentVolumeClaim",
       Claim(R"(,"dataSource":{"kind":"Odd","name":"n"})"),
       {"spec.dataSource: Invalid value: \"Odd\": must be 'PersistentVolumeClaim' when referencing the "
        "default "
        "apiGroup"}},
      {"v1",
       "PersistentVolumeClaim",
       Claim(
           R"(,"dataSource":{"kind":"PersistentVolumeClaim","name":"a"},"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"b"})"),
       {"spec: Invalid value: \"spec.dataSource\": must match dataSourceRef"}},
  });
  constexpr char kFrozen[] =
      "spec: Forbidden: spec is immutable after creation except resources.requests and "
      "volumeAttributesClassName for "
      "bound claims\n";
  constexpr char kGold[] = R"({"phase":"Bound","currentVolumeAttributesClassName":"gold"})";
  constexpr char kBound[] = R"({"phase":"Bound","capacity":{"storage":"1Gi"}})";
  ExpectChangeErrors(
      ValidateUpdate,
      {{"v1", "PersistentVolumeClaim", Claim(""), Claim(R"(,"volumeName":"v")"), {}},
       {"v1", "PersistentVolumeClaim", Claim(""), Claim(R"(,"storageClassName":"late")"), {}},
       {"v1",
        "PersistentVolumeClaim",
        Claim(R"(,"volumeName":"v")"),
        Claim(R"(,"volumeName":"w")"),
        {std::string(kFrozen) + "- spec.volumeName: \"v\"\n+ spec.volumeName: \"w\"\n"}},
       {"v1",
        "PersistentVolumeClaim",
        Claim("", "1Gi"),
        Claim("", "2Gi"),
        {std::string(kFrozen) + "- spec.resources.requests: [{\"key\":\"storage\",\"value\":\"1Gi\"}]\n"
                                "+ spec.resources.requests: [{\"key\":\"storage\",\"value\":\"2Gi\"}]\n"}},
       {"v1", "PersistentVolumeClaim", Claim("", "1Gi"), Claim("", "1024Mi"), {}},
       {"v1", "PersistentVolumeClaim", Claim("", "1Gi", kBound), Claim("", "2Gi", kBound), {}},
       {"v1", "PersistentVolumeClaim", Claim("", "3Gi", kBound), Claim("", "2Gi", kBound), {}},
       {"v1",
        "PersistentVolumeClaim",
        Claim("", "3Gi", kBound),
        Claim("", "1Gi", kBound),
        {"spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"}},
       {"v1",
        "PersistentVolumeClaim",
        Claim(R"(,"volumeAttributesClassName":"gold")", "1Gi", kBound),
        Claim("", "1Gi", kBound),
        {}},
       {"v1",
        "PersistentVolumeClaim",
        Claim(R"(,"volumeAttributesClassName":"gold")", "1Gi", kGold),
        Claim("", "1Gi", kGold),
        {"spec.volumeAttributesClassName: Forbidden: update to nil is forbidden when "
         "status.currentVolumeAttributesClassName is not nil"}},
       {"v1",
        "PersistentVolumeClaim",
        Claim(R"(,"volumeAttributesClassName":"gold")", "1Gi", kGold),
        Claim(R"(,"volumeAttributesClassName":"")", "1Gi", kGold),
        {"spec.volumeAttributesClassName: Forbidden: update to empty string is forbidden when "
         "status.currentVolumeAttributesClassName is not nil"}},
       {"v1",
        "PersistentVolumeClaim",
        Claim(R"(,"volumeAttributesClassName":"gold")", "1Gi", kGold),
        Claim(R"(,"volumeAttributesClassName":"silver")", "1Gi", kGold),
        {}}});
  ExpectChangeErrors(
      ValidateStatusUpdate,
      {{"v1",
        "PersistentVolumeClaim",
        Claim(""),
        Claim("", "1Gi",
              R"({"allocatedResources":{"storage":"1Gi"},"allocatedResourceStatuses":{"storage":"Odd"}})"),
        {"status.allocatedResourceStatuses: Unsupported value: \"storage\": supported values: "
         "\"ControllerResizeInProgress\", \"ControllerResizeInfeasible\", \"NodeResizeInProgress\", "
         "\"NodeResizeInfeasible\", \"NodeResizePending\""}},
       {"v1",
        "PersistentVolumeClaim",
        Claim(""),
        Claim("", "1Gi", R"({"allocatedResourceStatuses":{"cpu":"NodeResizePending"}})"),
        {"status.allocatedResourceStatuses: Unsupported value: \"cpu\": supported values: "
         "\"storage\""}}});
}

TEST(StorageRules, Classes) {
  ExpectErrors({
      {"storage.k8s.io/v1", "StorageClass", Cluster(R"("provisioner":"example.com/p")"), {}},
      {"storage.k8s.io/v1",
       "StorageClass",
       Cluster(R"("reclaimPolicy":"Recycle","volumeBindingMode":"Odd")"),
       {"provisioner: Required value",
        "reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", \"Retain\"",
        "volumeBindingMode: Unsupported value: \"Odd\": supported values: \"Immediate\", "
        "\"WaitForFirstConsumer\""}},
      {"storage.k8s.io/v1",
       "StorageClass",
       Cluster(
           R"("provisioner":"p","allowedTopologies":[{"matchLabelExpressions":[{"key":"k","values":["a","a"]}]}])"),
       {"allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: \"a\""}},
      {"storage.k8s.io/v1",
       "VolumeAttributesClass",
       Cluster(R"("driverName":"d.io")"),
       {"parameters: Required value: must contain at least one key/value pair"}},
      {"storage.k8s.io/v1",
       "VolumeAttachment",
       Cluster(R"("spec":{"attacher":"a.io","nodeName":"n","source":{}})"),
       {"spec.source: Required value: must specify exactly one of inlineVolumeSpec and "
        "persistentVolumeName"}},
      {"storage.k8s.io/v1",
       "CSIStorageCapacity",
       Namespaced(R"("storageClassName":"c","capacity":"-1","maximumVolumeSize":"-2")"),
       {"capacity: Invalid value: \"-1\": must be greater than or equal to 0"}},
      {"storage.k8s.io/v1",
       "CSIDriver",
       Cluster(R"("spec":{"fsGroupPolicy":"Odd","volumeLifecycleModes":["x"],)"
               R"("tokenRequests":[{"audience":"a","expirationSeconds":10},{"audience":"a"}]})"),
       {"spec.fsGroupPolicy: Unsupported value: \"Odd\": supported values: \"File\", \"None\", "
        "\"ReadWriteOnceWithFSType\"",
        "spec.tokenRequests[0].expirationSeconds: Invalid value: 10: may not specify a duration less than 10 "
        "minutes",
        "spec.tokenRequests[1].audience: Duplicate value: \"a\"",
        "spec.volumeLifecycleModes: Unsupported value: \"x\": supported values: \"Persistent\", "
        "\"Ephemeral\""}},
      {"storage.k8s.io/v1",
       "CSINode",
       Cluster(R"("spec":{"drivers":[{"name":"d.io","nodeID":"","allocatable":{"count":-1}}]})"),
       {"spec.drivers[0].nodeID: Required value",
        "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0"}},
  });
  ExpectChangeErrors(
      ValidateUpdate,
      {{"storage.k8s.io/v1",
        "StorageClass",
        Cluster(R"("provisioner":"p","parameters":{"a":"1"})"),
        Cluster(R"("provisioner":"q","reclaimPolicy":"Retain","volumeBindingMode":"WaitForFirstConsumer")"),
        {"parameters: Forbidden: updates to parameters are forbidden.",
         "provisioner: Forbidden: updates to provisioner are forbidden.",
         "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.",
         "volumeBindingMode: Invalid value: \"WaitForFirstConsumer\": field is immutable"}},
       {"storage.k8s.io/v1",
        "CSINode",
        Cluster(R"("spec":{"drivers":[{"name":"d.io","nodeID":"1","allocatable":{"count":1}}]})"),
        Cluster(R"("spec":{"drivers":[{"name":"d.io","nodeID":"1","allocatable":{"count":2}}]})"),
        {}},
       {"storage.k8s.io/v1",
        "CSIDriver",
        Cluster(R"("spec":{})"),
        Cluster(R"("spec":{"attachRequired":false})"),
        {"spec.attachedRequired: Invalid value: false: field is immutable"}},
       {"storage.k8s.io/v1",
        "CSIDriver",
        Cluster(R"("spec":{})"),
        Cluster(R"("spec":{"fsGroupPolicy":"Odd"})"),
        {"spec.fsGroupPolicy: Unsupported value: \"Odd\": supported values: \"File\", \"None\", "
         "\"ReadWriteOnceWithFSType\""}},
       {"storage.k8s.io/v1",
        "CSIDriver",
        Cluster(R"("spec":{})"),
        Cluster(R"("spec":{"fsGroupPolicy":"None"})"),
        {}}});
}

}  // namespace
}  // namespace keelson::k8s
