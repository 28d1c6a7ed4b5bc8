// A file as a loop device.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>

namespace keelson::kubelet {

class LoopDevice {
 public:
  explicit LoopDevice(const std::string& file) {
    std::array<char, 64> line{};
    UniquePipe out(::popen(("losetup --find --show " + file + " 2>/dev/null").c_str(), "r"));
    if (out && ::fgets(line.data(), line.size(), out.get())) path_ = line.data();
    while (!path_.empty() && path_.back() == '\n') path_.pop_back();
  }
  ~LoopDevice() {
    if (!path_.empty() && ::system(("losetup --detach " + path_).c_str()) != 0) ADD_FAILURE() << path_;
  }
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  const std::string& path() const { return path_; }  // empty: the machine has no free loop device
  // Updates the device to the file's size.
  bool Resize() const { return ::system(("losetup --set-capacity " + path_).c_str()) == 0; }

 private:
  struct Close {
    void operator()(FILE* file) const { ::pclose(file); }
  };
  using UniquePipe = std::unique_ptr<FILE, Close>;
  std::string path_;
};

}  // namespace keelson::kubelet
