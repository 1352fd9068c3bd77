// Sixty frames of two windows, drawn to nowhere: their triangles are counted. In a phase called "counted" it prints how
// many blocks ImGui itself says that it holds.
#include <cstdio>

#include <imgui.h>

#include "blockyard/frame.h"
#include "blockyard_imgui.hpp"

int main() {
  blockyard::imgui_install();
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.DisplaySize = ImVec2(1280, 720);
  unsigned char* pixels = nullptr;
  int width = 0;
  int height = 0;
  io.Fonts->GetTexDataAsRGBA32(&pixels, &width, &height);
  int triangles = 0;
  for (int frame = 0; frame < 60; ++frame) {
    io.DeltaTime = 1 / 60.0f;
    io.MousePos = ImVec2(20 + 5 * float(frame), 60);
    ImGui::NewFrame();
    {
      const blockyard::tag inventory("inventory");
      ImGui::Begin("Inventory");
      for (int i = 0; i < 5 * frame; ++i) ImGui::Text("a thing called %d", i);
      ImGui::End();
    }
    ImGui::ShowDemoWindow();
    ImGui::Render();
    triangles = ImGui::GetDrawData()->TotalIdxCount / 3;
    by_frame_mark();
  }
  const int blocks = io.MetricsActiveAllocations + 2;  // the context and its fonts are made before it counts
  by_phase_mark("counted");
  std::printf("%d blocks, %s\n", blocks, triangles > 100 ? "many triangles" : "few triangles");
  ImGui::DestroyContext();
}
