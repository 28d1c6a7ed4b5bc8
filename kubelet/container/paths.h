// The kubelet's paths on disk.
//
//   <root>/pods/<uid>/etc-hosts
//                    /containers/<container>/<random>      termination message
//                    /volumes/<escaped plugin>/<volume>    kubernetes.io~configmap, ...
//                    /plugins/<escaped plugin>/<volume>    what a plugin remembers
//                    /volumeDevices/<escaped plugin>/<volume>
//                    /volume-subpaths/<volume>/<container>/<index>
//   <root>/plugins/<escaped plugin>/volumeDevices/<volume>/<uid>
//   <root>/plugins/<plugin>/mounts/<volume>              a device's file system: kubernetes.io/local-volume
//   <logs>/<namespace>_<name>_<uid>/<container>/<restart>.log
#pragma once

#include <string>
#include <string_view>

namespace keelson::kubelet {

struct Paths {
  std::string root;  // --root-dir
  std::string logs;  // podLogsDir

  std::string Pods() const { return root + "/pods"; }
  std::string Pod(std::string_view uid) const { return Pods() + "/" + std::string(uid); }
  std::string EtcHosts(std::string_view uid) const { return Pod(uid) + "/etc-hosts"; }
  std::string Volumes(std::string_view uid) const { return Pod(uid) + "/volumes"; }
  std::string Volume(std::string_view uid, std::string_view plugin, std::string_view name) const {
    return Volumes(uid) + "/" + Escape(plugin) + "/" + std::string(name);
  }
  std::string PluginData(std::string_view uid, std::string_view plugin, std::string_view volume) const {
    return Pod(uid) + "/plugins/" + Escape(plugin) + "/" + std::string(volume);
  }
  std::string PodDevices(std::string_view uid) const { return Pod(uid) + "/volumeDevices"; }
  std::string VolumeDevices(std::string_view plugin, std::string_view volume) const {
    return root + "/plugins/" + Escape(plugin) + "/volumeDevices/" + std::string(volume);
  }
  std::string DeviceMount(std::string_view plugin, std::string_view volume) const {
    return root + "/plugins/" + std::string(plugin) + "/mounts/" + std::string(volume);
  }
  std::string SubPaths(std::string_view uid) const { return Pod(uid) + "/volume-subpaths"; }
  std::string SubPath(std::string_view uid, std::string_view volume, std::string_view container,
                      int index) const {
    return SubPaths(uid) + "/" + std::string(volume) + "/" + std::string(container) + "/" +
           std::to_string(index);
  }
  std::string Container(std::string_view uid, std::string_view name) const {
    return Pod(uid) + "/containers/" + std::string(name);
  }
  std::string PodLogs(std::string_view ns, std::string_view name, std::string_view uid) const {
    return logs + "/" + std::string(ns) + "_" + std::string(name) + "_" + std::string(uid);
  }

  // The plugin's name as a directory name.
  static std::string Escape(std::string_view plugin) {
    std::string out(plugin);
    for (char& c : out) {
      if (c == '/') c = '~';
    }
    return out;
  }
};

}  // namespace keelson::kubelet
